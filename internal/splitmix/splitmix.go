// Package splitmix is the generator of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014).
package splitmix

// Golden is the step of the sequence: Mix(s), Mix(s+Golden), Mix(s+2*Golden) and so on are random for any s.
const Golden = 0x9e3779b97f4a7c15

// Mix is the finalizer.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
