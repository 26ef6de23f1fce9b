package suspend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Only word.go accesses the atomic of a word, or computes with its states.
func TestOnlyWordGoTouchesTheWord(t *testing.T) {
	const home = "word.go"
	its := map[string]bool{"statusBits": true, "statusMask": true, "generation": true, "move": true, "word.v": true}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	at := map[bool]int{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		touches := func(n ast.Node, what string) {
			at[file == home]++
			if file != home {
				t.Errorf("%s: %s", set.Position(n.Pos()), what)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if its[n.Name] {
					touches(n, n.Name)
				}
			case *ast.SelectorExpr: // the field of a word, also through a variable named w
				if x, ok := n.X.(*ast.SelectorExpr); n.Sel.Name == "v" && ok && x.Sel.Name == "word" {
					touches(n, "word.v")
				}
				if x, ok := n.X.(*ast.Ident); n.Sel.Name == "v" && ok && (x.Name == "word" || x.Name == "w") {
					touches(n, "word.v")
				}
			}
			return true
		})
	}
	if at[true] < 20 {
		t.Errorf("only %d touches in %s: the test looks for the wrong names", at[true], home)
	}
}
