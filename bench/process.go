package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Some rows and curves run this program in a second process: as a client, as a file server, or to measure memory.

// helpers maps the first argument of such a process to the function that it runs. The process prints the function's result as JSON.
var helpers map[string]func(args []string) any

func init() {
	helpers = map[string]func(args []string) any{driveArg: driveHere, bytesArg: bytesHere, fileServerArg: fileServerHere}
}

// isHelper reports whether this process was started as a helper. If so, it does the helper's work before it returns.
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

// itself runs this program in another process, and returns the value that the process prints.
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
