package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

func Example() {
	_ = run(context.Background())
	// Output: [42 42] <nil>
}

// The code in the README is the code above.
func TestREADME(t *testing.T) {
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(code), "\t// README: begin\n")
	excerpt, _, ok2 := strings.Cut(after, "\t// README: end\n")
	if !ok || !ok2 {
		t.Fatal("no excerpt is marked in main.go")
	}
	excerpt = strings.ReplaceAll(strings.TrimPrefix(excerpt, "\t"), "\n\t", "\n")
	if !strings.Contains(string(readme), "```go\n"+excerpt+"```\n") {
		t.Errorf("README.md does not show\n%s", excerpt)
	}
}
