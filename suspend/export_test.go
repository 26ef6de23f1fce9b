package suspend

// Bindings returns the number of bound goroutines, and how many of them have an entry away from their home in the table.
func Bindings() (bound, away int) {
	for l := newest.Load(); l != nil; l = l.older {
		away += int(l.away.Load())
		for i := range l.buckets {
			for k := range l.buckets[i] {
				if l.buckets[i][k].key.Load() != 0 {
					bound++
				}
			}
		}
	}
	return bound, away
}
