// Package sharing counts the writes to words that all workers of a pool share. Such a write costs one worker 50 to 100 ns, during which no
// other worker can write the word. So all processors together cannot do more of them, while each processor adds its own writes to the words
// that only it uses.
//
// The test needs the traced types of package atomicx, so it is built with the tag explore. Each path runs several times, on another worker
// each time, while the other workers are blocked. A write is shared if its word was also written in a run on another worker. Locking and
// unlocking a lock are a write each.
package sharing
