package beside

// partition moves smaller elements before larger ones, and returns the index between them.
func partition(v []int) int {
	last := len(v) - 1
	v[len(v)/2], v[last] = v[last], v[len(v)/2]
	i := 0
	for j := range last {
		if v[j] < v[last] {
			v[i], v[j] = v[j], v[i]
			i++
		}
	}
	v[i], v[last] = v[last], v[i]
	return i
}

// fill computes a row of the Mandelbrot set.
func fill(rows [][]byte, row int) {
	for column := range rows[row] {
		z, c := 0i, complex(3*float64(column)/float64(len(rows[row]))-2, 2*float64(row)/float64(len(rows))-1)
		for n := range byte(100) {
			if z = z*z + c; real(z)*real(z)+imag(z)*imag(z) > 4 {
				rows[row][column] = n + 1
				break
			}
		}
	}
}
