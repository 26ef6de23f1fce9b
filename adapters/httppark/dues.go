package httppark

// dues is the heap of the deadlines of parked connections.
type dues []due

type due struct {
	at int64 // since lot.base
	k  parkable
}

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].at < d[j].at }
func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].k.base().at, d[j].k.base().at = int32(i), int32(j)
}

func (d *dues) Push(x any) {
	x.(due).k.base().at = int32(len(*d))
	*d = append(*d, x.(due))
}

func (d *dues) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = due{}
	*d, x.k.base().at = (*d)[:last], -1
	return x
}
