package docs

import (
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A door is a heading of the list of packages, with their folders in the order of the list, and the pages to begin with.
type door struct{ heading, folders, begin string }

// doors lists every package that a program may import, and every command that a user may call, exactly once.
var doors = []door{
	{"Goroutines and services", `mutex cond semaphore chanx promise mvar lazy latch watch broadcast rate keyed respool scope cancel suspend
		suspend/census adapters/httppark`,
		"[what to use for what](docs/choosing.md), [the context of a request](docs/choosing.md#the-context-of-a-request), [from Kotlin](docs/choosing.md#from-kotlinxcoroutines)"},
	{"Loops, GUIs and pools", `adapters/callback adapters/eventloop adapters/workstealing adapters/limited adapters/fifo adapters/netstack suspend/sched`,
		"[gnet and netpoll](docs/programs.md#gnet-or-netpoll-with-a-pool), [a GUI](docs/gui.md), [JavaScript](docs/javascript.md), [stock clients on Braid's event loop](adapters/eventloop/README.md)"},
	{"Overload, batches, transactions and actors", `stage stage/view stage/prom stage/otel stage/jetstream fetch fetch/fetchtest stm stm/collections
		actor actor/natsactor`,
		"[an overloaded server](stage/README.md), [many keys in one request](fetch/README.md), [transactions](stm/README.md), [actors](actor/README.md)"},
	{"Tests with seeds, and tools", `simulation simulation/nemesis simulation/disk simulation/hunt simulation/overlay adapters/random suspendtest
		suspendtest/linear suspendtest/atomic braidvet/cmd/braidvet braidvet/plugin braidvet`,
		"[a flaky test](simulation/hunt/README.md), [a distributed program](simulation/README.md), [cancelled code](docs/cancellation.md)"},
}

// internals are the folders that only the map in CONTRIBUTING.md lists, in addition to those under internal and examples.
var internals = []string{"bench", "docs", "adapters/eventloop/stocktest", "simulation/stocktest", "simulation/stocktest/etcdraft",
	"simulation/services/badger", "simulation/services/bbolt", "simulation/services/buntdb", "simulation/services/etcd", "simulation/services/grpcreg",
	"simulation/services/kafka", "simulation/services/memberlist", "simulation/services/nats", "simulation/services/raft", "simulation/services/raftwal", "simulation/services/web"}

// A pkg is a folder with code.
type pkg struct {
	synopsis string // the first sentence of its comment, without the name of the package
	command  bool
	module   bool // in a module other than the root
}

// packages returns the packages of the repository by their folders. All examples count as one package.
func packages(t *testing.T) map[string]pkg {
	modules, comments, found := map[string]bool{}, map[string]string{}, map[string]pkg{}
	for _, name := range files(t, "go.mod") {
		modules[path.Dir(name)] = path.Dir(name) != "."
	}
	for _, name := range files(t, ".go") {
		folder := path.Dir(name)
		if folder == "." || strings.HasPrefix(folder, "examples/") || strings.Contains(folder, "testdata") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		p := found[folder]
		p.command = f.Name.Name == "main"
		for at := folder; at != "."; at = path.Dir(at) {
			p.module = p.module || modules[at]
		}
		if text := f.Doc.Text(); text != "" && comments[folder] == "" {
			comments[folder] = text
			p.synopsis = short(text, f.Name.Name, path.Base(folder))
		}
		found[folder] = p
	}
	found["examples"] = pkg{synopsis: "programs, each with the command that runs it"}
	return found
}

// short returns the first sentence of a package comment as an entry of a list: "Package mutex provides a lock." becomes "a lock".
func short(comment, name, base string) string {
	text := new(doc.Package).Synopsis(comment)
	text = strings.TrimPrefix(text, "Package "+name+" ")
	text = strings.TrimPrefix(text, strings.ToUpper(base[:1])+base[1:]+" ")
	for _, verb := range []string{"provides ", "implements ", "has ", "is "} {
		if rest, ok := strings.CutPrefix(text, verb); ok {
			text = rest
			break
		}
	}
	return strings.ReplaceAll(strings.TrimRight(text, ".:"), "|", `\|`)
}

// TestSynopses checks that the first sentence of each package comment can stand in a list, and that each package is behind
// exactly one door.
func TestSynopses(t *testing.T) {
	all, public := packages(t), []string{}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		synopsis := all[folder].synopsis
		require.NotEmpty(t, synopsis, "%s has no package comment", folder)
		require.LessOrEqual(t, len(synopsis), 150, "%s: the first sentence of the package comment is long: %s", folder, synopsis)
		if !strings.Contains("/"+folder, "/internal/") && folder != "examples" && !slices.Contains(internals, folder) {
			public = append(public, folder)
		}
	}
	var shown []string
	for _, d := range doors {
		shown = append(shown, strings.Fields(d.folders)...)
	}
	slices.Sort(shown)
	require.Equal(t, public, shown, "the doors, in packages_test.go, do not match the packages of the repository")
}

// A place is a part of a file that this test writes. It lies between two fixed lines.
type place struct {
	file, begins, ends string
	text               string
}

const (
	listBegins = "<!-- the packages, written by go test ./internal/testrig/docs -update -->\n"
	listEnds   = "<!-- end of the packages -->\n"
)

func places(all map[string]pkg) []place {
	var readme, choosing, comment, contributing strings.Builder
	contributing.WriteString("| folder | content |\n|---|---|\n")
	for _, d := range doors {
		comment.WriteString("//\n// # " + d.heading + "\n//\n")
		choosing.WriteString("\n### " + d.heading + "\n\n| package | |\n|---|---|\n")
		var links []string
		for _, folder := range strings.Fields(d.folders) {
			p := all[folder]
			if name := strings.TrimPrefix(folder, "adapters/"); !strings.Contains(name, "/") { // README.md lists no others, to stay short
				links = append(links, "[`"+name+"`]("+folder+")")
			}
			kind := ""
			switch {
			case p.command:
				kind = " (a command)"
			case p.module:
				kind = " (a separate module)"
			}
			choosing.WriteString("| [`" + folder + "`](../" + folder + ") | " + p.synopsis + kind + " |\n")
			comment.WriteString(wrap("//   - ", "//     ", "[github.com/braidgo/braid/"+folder+"]: "+p.synopsis+kind))
		}
		readme.WriteString("- **[" + d.heading + "](docs/choosing.md#" + anchor(d.heading) + ")**: " + strings.Join(links, ", ") +
			". Begin with " + d.begin + ".\n")
	}
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		contributing.WriteString("| `" + folder + "` | " + all[folder].synopsis + " |\n")
	}
	return []place{
		{"README.md", listBegins, listEnds, readme.String()},
		{"docs/choosing.md", listBegins, listEnds, choosing.String() + "\n"},
		{"doc.go", "// of this library. A wait suspends only its task, ends with its context, and loses nothing.\n", "//\n// # Where to go next\n", comment.String()},
		{"CONTRIBUTING.md", listBegins, listEnds, contributing.String()},
	}
}

// wrap breaks text into lines of at most 140 characters. The first begins with first, and the others with indent.
func wrap(first, indent, text string) string {
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > 140:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return b.String() + line + "\n"
}

// TestPackages compares the lists of packages in doc.go, README.md, docs/choosing.md and CONTRIBUTING.md with the comments of the packages.
// After a change of a package comment, or with a new package,
//
//	go test ./internal/testrig/docs -update
//
// writes the lists.
func TestPackages(t *testing.T) {
	for _, p := range places(packages(t)) {
		before, rest, ok := strings.Cut(read(t, p.file), p.begins)
		require.True(t, ok, "%s: the beginning of the list was not found", p.file)
		got, after, ok := strings.Cut(rest, p.ends)
		require.True(t, ok, "%s: the end of the list was not found", p.file)
		if *update && got != p.text {
			text := before + p.begins + p.text + p.ends + after
			require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(p.file)), []byte(text), 0o644))
			got = p.text
		}
		require.Equal(t, p.text, got, "the list in %s differs from the package comments. If the change is intended, run\n\n"+
			"\tgo test ./internal/testrig/docs -update\n", p.file)
	}
}
