package main

func Example() {
	main()
	// Output: [42 42] <nil>
}
