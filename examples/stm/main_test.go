package main

func Example() {
	main()
	// Output:
	// 500 meals, <nil>
	// 27 toys, 18 questions, <nil>
	// 100 <nil>
	// 5050, told to end <nil>
}
