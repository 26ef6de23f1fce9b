package model

// All contains the Specs of all primitives.
var All = []Spec{
	MVars(RealMVar),
	Mutexes(RealMutex),
	RWMutexes(RealRWMutex),
	Semaphores(RealSemaphore),
	Conds(RealCond),
	Chans(RealChan),
	Promises(RealPromise),
	Latches(RealLatch),
	Barriers(RealBarrier),
	Lazies(RealLazy),
	Watches(RealWatched),
	Topics(RealTopic),
	Transactions,
	Selects,
}

// Selects is the Spec of several primitives and of Selects over them.
var Selects = Spec{Name: "select", New: func(Choose) *System {
	m, s, p, l := mvarPart(RealMVar()), semaphorePart(1, RealSemaphore(1)), promisePart(RealPromise()), mutexPart(RealMutex())
	l.Name = "l"
	m.Kinds, s.Kinds = m.Kinds[:4], s.Kinds[:4]
	return &System{
		Title:   "c0 is a channel of 0, c1 one of 1, m an MVar, s a semaphore of 1, p a Promise, l a Mutex",
		Parts:   []Part{chanPart("c0", 0, RealChan(0), false), chanPart("c1", 1, RealChan(1), false), m, s, p, l},
		Selects: true,
	}
}}
