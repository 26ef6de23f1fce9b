package main

func Example() {
	main()
	// Output: 500 meals, <nil>
}
