package edited

// osEdits lead package os to the files of a node.
var osEdits []edit
