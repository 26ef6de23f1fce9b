package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Rows and curves start this program again, as the client of servers, or to measure memory alone.

// helpers are what such a process does, by its first argument. It prints the value as JSON.
var helpers map[string]func(args []string) any

func init() {
	helpers = map[string]func(args []string) any{driveArg: driveHere, bytesArg: bytesHere, fileServerArg: fileServerHere}
}

// isHelper reports whether this process is one, and has done its work.
func isHelper() bool {
	if len(os.Args) < 2 || helpers[os.Args[1]] == nil {
		return false
	}
	var err error
	func() {
		defer caught(&err)
		ok(json.NewEncoder(os.Stdout).Encode(helpers[os.Args[1]](os.Args[2:])))
	}()
	exitOn(err)
	return true
}

// itself runs this program in another process, and returns its value.
func itself[T any](env []string, args ...string) (v T) {
	cmd := exec.Command(must(os.Executable()), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("the process of %s: %w", strings.Join(args, " "), err)
	}
	ok(err)
	ok(json.Unmarshal(out, &v))
	return v
}
