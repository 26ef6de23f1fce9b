package workstealing

// Workers returns how many workers p has.
func Workers(p *Pool) int { return len(*p.workers.Load()) }
