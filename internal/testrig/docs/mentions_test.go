package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var member = regexp.MustCompile(`(?:^|[^\w./"-])([a-z]\w*)\.([a-z]\w*)(?:[^\w./]|$|\.\s|\.$)`)

// TestMentions checks that a comment that mentions a member of an unexported type, such as batch.finish, names a method or a field
// that the type has. A renamed function would otherwise leave its old name in the comments.
func TestMentions(t *testing.T) {
	folders := map[string][]string{}
	for _, name := range files(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata") && !strings.Contains(name, "/_") {
			folders[path.Dir(name)] = append(folders[path.Dir(name)], name)
		}
	}
	mentions := 0
	for _, names := range folders {
		members := map[string]map[string]bool{} // of each type
		var parsed []*ast.File
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ParseComments)
			require.NoError(t, err)
			parsed = append(parsed, file)
			addMembers(members, file)
		}
		for _, file := range parsed {
			for _, comment := range file.Comments {
				for line := range strings.Lines(comment.Text()) {
					if strings.HasPrefix(line, "\t") {
						continue // code
					}
					for _, m := range member.FindAllStringSubmatch(line, -1) {
						if has := members[m[1]]; has != nil && m[2] != "go" {
							mentions++
							require.True(t, has[m[2]] || has[embedded], "a comment of %s mentions %s.%s", path.Dir(names[0]), m[1], m[2])
						}
					}
				}
			}
		}
	}
	require.Greater(t, mentions, 50)
}

const embedded = "" // the member of a type that embeds another, whose members are not known

func addMembers(members map[string]map[string]bool, file *ast.File) {
	add := func(of, member string) {
		if members[of] == nil {
			members[of] = map[string]bool{}
		}
		members[of][member] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			ast.Inspect(n.Type, func(in ast.Node) bool {
				if f, ok := in.(*ast.Field); ok {
					if len(f.Names) == 0 {
						add(n.Name.Name, embedded)
					}
					for _, name := range f.Names {
						add(n.Name.Name, name.Name)
					}
				}
				return true
			})
		case *ast.FuncDecl:
			if n.Recv != nil {
				ast.Inspect(n.Recv.List[0].Type, func(in ast.Node) bool {
					if id, ok := in.(*ast.Ident); ok {
						add(id.Name, n.Name.Name)
						return false
					}
					return true
				})
			}
		}
		return true
	})
}
