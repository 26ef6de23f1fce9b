package mutation

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// upToDate returns the mutants with the names that local variables have now.
func upToDate(t *testing.T, root string, mutants []Mutant) []Mutant {
	now := make([]Mutant, len(mutants))
	for i, m := range mutants {
		now[i] = m
		if src := read(t, root, m); !strings.Contains(src, m.text()) {
			if now[i] = renamed(src, m); now[i] != m {
				t.Logf("%s: variables have been renamed in\n%s", m.name(), now[i].text())
			}
		}
	}
	return now
}

// renamed returns m with other names of local variables in its text and in the replacement, so that the text occurs in the file src. If
// no such text, or more than one, can be found, renamed returns m as it is. A similar text elsewhere in the file would be a mistake in other
// code. So the file must not use an old name any more, and the text must contain a name that is not local.
func renamed(src string, m Mutant) Mutant {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", src, 0)
	if err != nil {
		return m
	}
	local := map[int]bool{}   // the offsets of identifiers that name local variables
	used := map[string]bool{} // the identifiers that are not fields
	field := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			field[n.Sel] = true
		case *ast.Ident:
			used[n.Name] = used[n.Name] || !field[n]
			local[files.Position(n.Pos()).Offset] = n.Obj != nil && n.Obj.Kind == ast.Var && f.Scope.Lookup(n.Name) != n.Obj
		}
		return true
	})
	have, want := tokens(src), tokens(m.text())
	found, n := m, 0
	for at := 0; at+len(want) <= len(have); at++ {
		names, ok := match(have[at:], want, local)
		for old, name := range names {
			ok = ok && (old == name || !used[old])
		}
		if !ok {
			continue
		}
		now := m
		now[2], now[3] = rename(m[2], names), rename(m[3], names)
		if strings.Count(src, now.text()) == 1 {
			found = now
			n++
		}
	}
	if n != 1 {
		return m
	}
	return found
}

// A lexeme is a token of Go, with its text.
type lexeme struct {
	offset int
	token.Token
	text string
}

// tokens returns the tokens of a piece of Go. A semicolon at the end of a line counts as one, but not at the end of the piece.
func tokens(src string) (all []lexeme) {
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(src))
	s.Init(file, []byte(src), func(token.Position, string) {}, 0)
	for {
		pos, tok, text := s.Scan()
		if offset := file.Offset(pos); tok == token.EOF || tok == token.SEMICOLON && text == "\n" && offset >= len(src) {
			return all
		} else {
			all = append(all, lexeme{offset, tok, text})
		}
	}
}

// match compares the tokens of a piece of text with the beginning of the tokens of a file, in which local variables may have other names.
// It returns the name of each. At least one name must not be local.
func match(have, want []lexeme, local map[int]bool) (names map[string]string, ok bool) {
	names, taken := map[string]string{}, map[string]string{}
	for i, w := range want {
		h := have[i]
		if h.Token != w.Token {
			return nil, false
		}
		if h.Token != token.IDENT || !local[h.offset] {
			if h.text != w.text {
				return nil, false
			}
			ok = ok || h.Token == token.IDENT
			continue
		}
		name, seen := names[w.text]
		if old, has := taken[h.text]; seen && name != h.text || has && old != w.text {
			return nil, false
		}
		names[w.text], taken[h.text] = h.text, w.text
	}
	return names, ok
}

var identifier = regexp.MustCompile(`\.?\b[\pL_]\w*`)

// rename replaces identifiers in a piece of text, unless they follow a dot.
func rename(text string, names map[string]string) string {
	return identifier.ReplaceAllStringFunc(text, func(id string) string {
		if name := names[id]; name != "" {
			return name
		}
		return id
	})
}
