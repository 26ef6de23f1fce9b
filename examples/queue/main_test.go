package main

func Example() {
	main()
	// Output:
	// 100 <nil>
	// 5050, told to end <nil>
}
