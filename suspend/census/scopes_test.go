package census_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// A server has a Group for its sessions, and each session a scope.
func ExampleName_scopes() {
	defer census.Start(census.Options{})()
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		server := scope.Open(ctx, scope.FirstError)
		census.Name(server.Scope, "server")
		end := promise.New[int]()
		session := func(ctx context.Context) error {
			return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
				for range 2 {
					s.Go(suspend.Here(), func(ctx context.Context) error { _, err := end.Await(ctx); return err })
				}
				return nil
			})
		}
		for range 3 {
			server.Go(suspend.Here(), session)
		}
		for range 10 {
			suspend.Yield()
		}
		_, text, _ := strings.Cut(census.Take().String(), "\nscopes\n")
		fmt.Print(regexp.MustCompile(`\d+(\.\d+)?(µs|ms|s)\b`).ReplaceAllString(text, "1.2s"))
		_ = end.Fill(1)
		return server.Close()
	})
	// Output:
	//   scope.Scope "server" of scope.Open at census_test.ExampleName_scopes.func1 (census/scopes_test.go:28), 1.2s
	//     3 tasks of fifo: scope.Run at census_test.ExampleName_scopes.func1.1 (census/scopes_test.go:32), 1.2s
	//     3 scopes of scope.Run at census_test.ExampleName_scopes.func1.1 (census/scopes_test.go:32), 1.2s
	//       6 tasks of fifo: promise.Promise.Await at census_test.ExampleName_scopes.func1.1.1.1 (census/scopes_test.go:34), 1.2s
}

// path returns the names of the scope of t and of the scopes around that scope.
func path(s census.Snapshot, t census.Task) (names []string) {
	for id := t.Scope; id != 0; {
		i := slices.IndexFunc(s.Scopes, func(x census.Scope) bool { return x.ID == id })
		if i < 0 {
			return append(names, "gone")
		}
		names = append(names, s.Scopes[i].Name)
		id = s.Scopes[i].Parent
	}
	return names
}

// Tasks of each scheduler are members of nested scopes: the child of a Group opens a scope, and a Group that outlives the child.
func TestScopes(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on(t)
		named := func(name string) *promise.Promise[int] { return census.Name(promise.New[int](), name) }
		leaves, body, ends := named("leaves"), named("body"), named("ends")
		outer := scope.Open(bg, scope.FirstError)
		census.Name(outer.Scope, "outer")
		outlives := make(chan *scope.Group, 1)
		await := func(p *promise.Promise[int]) func(ctx context.Context) error {
			return func(ctx context.Context) error { _, err := p.Await(ctx); return err }
		}
		outer.Go(s, func(ctx context.Context) error {
			return scope.Run(ctx, func(ctx context.Context, in *scope.Scope) error {
				census.Name(in, "inner")
				g := scope.Open(bg, scope.FirstError)
				census.Name(g.Scope, "group")
				outlives <- g
				in.Go(s, await(leaves))
				g.Go(s, await(ends))
				return await(body)(ctx)
			})
		})
		paths := func(operation, object string) (all [][]string) {
			s := census.Take()
			for _, x := range waiting(s, operation) {
				if x.Scope != 0 && strings.Contains(x.Waits.For[0].Name, object) {
					all = append(all, path(s, x))
				}
			}
			return all
		}
		awaiting := func(object string) [][]string { return paths("promise.Promise.Await", strconv.Quote(object)) }
		schedtest.Eventually(t, "all wait", func() bool {
			return len(awaiting("leaves")) == 1 && len(awaiting("body")) == 1 && len(awaiting("ends")) == 1
		})
		require.Equal(t, [][]string{{`scope.Scope "inner"`, `scope.Scope "outer"`}}, awaiting("leaves"))
		require.Equal(t, [][]string{{`scope.Scope "inner"`, `scope.Scope "outer"`}}, awaiting("body"))
		require.Equal(t, [][]string{{`scope.Scope "group"`, `scope.Scope "inner"`, `scope.Scope "outer"`}}, awaiting("ends"))
		text := census.Take().String()
		require.Contains(t, text, `member of scope.Scope "group", inside scope.Scope "inner", inside scope.Scope "outer"`)
		_, tree, _ := strings.Cut(text, "\nscopes\n")
		require.Regexp(t, `(?s)^  scope.Scope "outer" of scope.Open at census_test.TestScopes\S* .*\n    scope.Scope "inner" of scope.Run at .*\n      scope.Scope "group" of scope.Open at .*`, tree)

		_ = body.Fill(1)
		schedtest.Eventually(t, "the body has returned", func() bool { return len(awaiting("body")) == 0 && len(paths("scope.Run", "")) == 1 })
		require.Equal(t, [][]string{{`scope.Scope "outer"`}}, paths("scope.Run", ""), "the task that waits for the children is no longer a member")
		_ = leaves.Fill(1)
		require.NoError(t, outer.Shutdown(bg))
		schedtest.Eventually(t, "the scopes around it have ended", func() bool { return len(census.Take().Scopes) == 1 })
		require.Equal(t, [][]string{{`scope.Scope "group"`, "gone"}}, awaiting("ends"))
		require.Regexp(t, `^  scope.Scope "group" of scope.Open`, strings.SplitN(census.Take().String(), "\nscopes\n", 2)[1])
		_ = ends.Fill(1)
		require.NoError(t, (<-outlives).Shutdown(bg))
		require.Empty(t, census.Take().Scopes)
	})
}

// A scope that was opened before the census is known only by its members. A Group that becomes garbage without a Close is
// forgotten.
func TestScopesFromBefore(t *testing.T) {
	early := scope.Open(bg, scope.FirstError)
	on(t)
	var p promise.Promise[int]
	early.Go(suspend.Goroutines, func(ctx context.Context) error { _, err := p.Await(ctx); return err })
	s := eventually(t, func(s census.Snapshot) bool { return len(waiting(s, "promise.Promise.Await")) == 1 })
	require.Len(t, s.Scopes, 1)
	require.Zero(t, s.Scopes[0].At)
	require.Equal(t, []string{fmt.Sprintf("scope.Scope %p", early.Scope)}, path(s, waiting(s, "promise.Promise.Await")[0]))
	require.Contains(t, s.String(), fmt.Sprintf("\nscopes\n  scope.Scope %p\n    goroutine ", early.Scope))
	_ = p.Fill(1)
	require.NoError(t, early.Close())
	require.Empty(t, census.Take().Scopes)
	func() { scope.Open(bg, scope.FirstError) }()
	eventually(t, func(s census.Snapshot) bool { runtime.GC(); return len(s.Scopes) == 0 })
}

// The body of a Pull opens a scope, which ends in another task. Later tasks on the coroutine of the first task must not be
// members of this scope, nor of the scopes around it.
func TestAScopeInTheBodyOfAPull(t *testing.T) {
	on(t)
	_ = fifo.Run(bg, func(context.Context) error {
		g := scope.Open(bg, scope.FirstError)
		census.Name(g.Scope, "group")
		var p promise.Promise[int]
		var next func() (int, bool)
		var stop func()
		g.Go(suspend.Here(), func(ctx context.Context) error {
			next, stop = suspend.Pull(func(yield func(int) bool) {
				_ = scope.Run(ctx, func(context.Context, *scope.Scope) error { yield(1); return nil })
			})
			next()
			return nil
		})
		schedtest.Settle()
		waits := func() { _, _ = p.Await(bg) }
		for range 4 { // one of them on the coroutine of the child
			_ = suspend.Here().Go(waits)
		}
		schedtest.Settle()
		stop()
		for range 4 {
			_ = suspend.Here().Go(waits)
		}
		schedtest.Settle()
		tasks := waiting(census.Take(), "promise.Promise.Await")
		require.Len(t, tasks, 8)
		for _, x := range tasks {
			require.Zero(t, x.Scope)
		}
		_ = p.Fill(1)
		schedtest.Settle()
		return g.Close()
	})
	require.Empty(t, census.Take().Scopes)
}

func TestThePageShowsScopes(t *testing.T) {
	on(t)
	g := scope.Open(bg, scope.FirstError)
	census.Name(g.Scope, "<b>")
	var p promise.Promise[int]
	g.Go(suspend.Goroutines, func(ctx context.Context) error {
		return scope.Run(ctx, func(ctx context.Context, in *scope.Scope) error { _, err := p.Await(ctx); return err })
	})
	eventually(t, func(s census.Snapshot) bool { return len(waiting(s, "promise.Promise.Await")) == 1 })
	server := serve(t)
	_, html := ask(t, server, "", "text/html")
	require.Regexp(t, `(?s)<h2>Scopes</h2>\n<ul><li>scope.Scope &#34;&lt;b&gt;&#34; of scope.Open at .*<ul><li>scope.Scope 0x\S+ of scope.Run at .*<span class="member">goroutine \d+: promise.Promise.Await at .*</ul></li>\n</ul>`, html)
	_, data := ask(t, server, "?as=json", "")
	var s census.Snapshot
	require.NoError(t, json.Unmarshal([]byte(data), &s))
	require.Equal(t, census.Take().Scopes[1].Parent, s.Scopes[1].Parent)
	require.Equal(t, s.Scopes[0].ID, s.Scopes[1].Parent)
	_ = p.Fill(1)
	require.NoError(t, g.Close())
}

// The body of a Pull opens a scope and yields inside it. The scope includes what the body does, but nothing that the callers of
// next do, even if they leave their scopes in a different order from the body.
func TestCallersAreNotInTheScopeOfAPull(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on(t)
		newScope := func() string { // returns the name of the enclosing scope
			before := census.Take().Scopes
			g := scope.Open(bg, scope.FirstError)
			all := census.Take().Scopes
			require.NoError(t, g.Shutdown(bg))
			require.Len(t, all, len(before)+1)
			for _, x := range before {
				if x.ID == all[len(before)].Parent {
					return x.Name
				}
			}
			return ""
		}
		in := func(name string, f func()) {
			require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error { census.Name(s, name); f(); return nil }))
		}
		const outer, mine, pulled = `scope.Scope "outer"`, `scope.Scope "mine"`, `scope.Scope "pulled"`
		p := census.Name(promise.New[int](), "p")
		schedtest.Run(t, s, func() {
			var next func() (string, bool)
			var stop func()
			pulls := func(want string) {
				t.Helper()
				got, ok := next()
				require.True(t, ok)
				require.Equal(t, want, got)
			}
			in("outer", func() {
				next, stop = suspend.Pull(func(yield func(string) bool) {
					yield(newScope())
					in("pulled", func() {
						_, _ = p.Await(bg)
						for yield(newScope()) {
						}
					})
				})
				pulls(outer)
				pulls(pulled)
				require.Equal(t, outer, newScope(), "the body is not running")
				in("mine", func() {
					require.Equal(t, mine, newScope())
					pulls(pulled)
					stop()
					require.Equal(t, mine, newScope(), "the body has left its scope")
				})
				require.Equal(t, outer, newScope())
			})
			require.Empty(t, newScope())
		}, func() {
			tasks := func() []census.Task {
				return slices.DeleteFunc(waiting(census.Take(), "promise.Promise.Await"), func(x census.Task) bool {
					return !strings.Contains(x.Waits.For[0].Name, `"p"`)
				})
			}
			schedtest.Eventually(t, "the body waits", func() bool { return len(tasks()) == 1 })
			if got := path(census.Take(), tasks()[0]); !slices.Equal([]string{pulled, outer}, got) {
				t.Errorf("the body waits in %q", got)
			}
			_ = p.Fill(1)
		})
		require.Empty(t, census.Take().Scopes)
	})
}
