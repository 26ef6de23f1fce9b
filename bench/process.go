package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Rows and curves start this program again, as the client or the server of a measurement, or to measure memory alone.

// helpers are what such a process does, by its first argument. It prints the value as JSON.
var helpers map[string]func(args []string) any

func init() {
	helpers = map[string]func(args []string) any{driveArg: driveHere, serveArg: serveHere, bytesArg: bytesHere}
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

func command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(must(os.Executable()), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	return cmd
}

// itself runs this program in another process, and returns its value.
func itself[T any](env []string, args ...string) (v T) {
	out, err := command(env, args...).Output()
	if err != nil {
		err = fmt.Errorf("the process of %s: %w", strings.Join(args, " "), err)
	}
	ok(err)
	ok(json.Unmarshal(out, &v))
	return v
}

// serving starts a server in a process that ends with its standard input, and returns the first value that it prints.
func serving[T any](b *bench, env []string, args ...string) (v T) {
	cmd := command(env, args...)
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	ok(cmd.Start())
	b.close(func() { ok(errors.Join(in.Close(), cmd.Wait())) })
	if err := json.NewDecoder(out).Decode(&v); err != nil {
		ok(fmt.Errorf("the server %v: %w", args, err))
	}
	return v
}
