package main

func Example() {
	main()
	// Output: 27 toys, 18 questions, <nil>
}
