// Package splitmix implements the random number generator of Steele, Lea and Flood, "Fast Splittable Pseudorandom
// Number Generators" (OOPSLA 2014).
package splitmix

// Golden is the increment of the generator's state: Mix(s), Mix(s+Golden), Mix(s+2*Golden) and so on is a random
// sequence for any s.
const Golden = 0x9e3779b97f4a7c15

// Mix returns the random number for the state x.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
