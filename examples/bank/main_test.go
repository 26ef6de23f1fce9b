package main

func Example() {
	main()
	// Output: audited: true <nil> some refused: true <nil>
}
