package workstealing

// Workers returns how many workers p has.
func Workers(p *Pool) int { return len(*p.workers.Load()) }

// Drop does what the timer of the kept coroutines does.
func (p *Pool) Drop() { p.dropKept() }
