// Package sharing counts the writes to words that all workers of a pool share. Such a write costs one worker 50 to 100 ns, during which no
// other worker can write the word. So all processors together cannot do more of them, while each processor adds its own writes to the words
// that only it uses.
//
// The test needs the traced types of package atomicx, so it is built with the tag explore. Each path runs several times, on another worker
// each time, while the other workers are blocked. A word is shared if it was also written in a run on another worker. Locking and
// unlocking a lock are a write each.
//
// Some code writes to one of several shared words, such as the shards of a pool's common queue. With n shards, the processors together can do n
// such writes at a time, so each counts as 1/n: the probability that two writes of the same code, taken at random, are to the same word. Code that
// always writes to the same word counts in full, however seldom it runs.
package sharing
