package main

func Example() {
	main()
	// Output:
	// take from an empty queue: true
	// take: job 1 <nil>
	// select: mail <nil>
}
