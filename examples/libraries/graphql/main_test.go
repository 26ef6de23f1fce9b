package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestServers(t *testing.T) {
	m, err := mux()
	if err != nil {
		t.Fatal(err)
	}
	want := answer(t, m, "/naive", 200+200+200*18)
	if n := len(want["users"].([]any)); n != numUsers {
		t.Fatalf("%d users", n)
	}
	for range 3 { // repeats, because the figures must be the same each time
		if got := answer(t, m, "/later", 3); !reflect.DeepEqual(got, want) {
			t.Error("/later answers something else")
		}
		if got := ask(m, "/later").Header().Get("Fetch-Rounds"); got != "2 rounds, 3 batches, 1000 keys for 4000 gets" {
			t.Error(got)
		}
		if got := answer(t, m, "/settled", 200); !reflect.DeepEqual(got, want) {
			t.Error("/settled answers something else")
		}
	}
}

// answer returns the data of a response, which must take at most the given number of statements.
func answer(t *testing.T, m http.Handler, path string, most int) map[string]any {
	w := ask(m, path)
	var a struct {
		Data   map[string]any
		Errors []any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || len(a.Errors) > 0 {
		t.Fatal(err, a.Errors)
	}
	n, err := strconv.Atoi(w.Header().Get("Statements"))
	if err != nil || n > most {
		t.Errorf("%s: %d statements", path, n)
	}
	t.Log(path, n, "statements,", w.Header().Get("Fetch-Rounds"))
	return a.Data
}

func TestCompare(t *testing.T) {
	m, err := mux()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	compare(m, &out)
	for _, want := range []string{
		"/later       3 statements  2 rounds, 3 batches, 1000 keys for 4000 gets\n",
		"/naive    4000 statements  0 rounds",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
}
