package edited

// netEdits lead package net to the network of a simulation.
var netEdits []edit
