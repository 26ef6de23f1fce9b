// Package disk is an interface of files for a program that keeps data through crashes. The program runs on the system, and in
// adapters/simulation, where a test makes the crashes:
//
//	func Open(d disk.FS) (*Store, error)
//
//	store, err := Open(must(disk.Dir("/var/lib/store"))) // in production
//	store, err := Open(node.FS())                        // in a test
//
// Bytes are safe after File.Sync, and names after FS.Sync. A program that syncs too little passes every test on a file system that never
// crashes. On a simulated node it loses data in a crash, so that the test fails.
package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// An FS is a set of files. Names have no directories.
type FS interface {
	Create(name string) (File, error) // creates an empty file, and replaces an older file
	Open(name string) (File, error)   // opens for reading and writing
	Rename(old, new string) error     // replaces an older file
	Remove(name string) error         // an open file stays, but has no name
	Names() ([]string, error)         // names of all files, sorted
	Sync() error                      // makes the names durable: what Create, Rename and Remove did
}

// A File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string // the name that it was opened with
	Size() (int64, error)
	Truncate(size int64) error

	// Sync makes the bytes durable. If it fails, they are not durable, and no later Sync makes them so: they must be written again.
	Sync() error
}

// Dir returns the FS of a directory of the system, which exists. Names with a slash, and names that begin with ".new-", are refused. Sync
// does nothing on Windows, where a directory cannot be synced.
func Dir(path string) (FS, error) {
	d := dir(path)
	left, err := filepath.Glob(filepath.Join(path, temporary+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left { // a crash in Create leaves such a file
		_ = os.Remove(name)
	}
	_, err = d.Names()
	return d, err
}

type dir string

// temporary begins the name of a file that Create makes. Renaming it leaves the older file as it is up to the next Sync, but truncating the
// older file would not.
const temporary = ".new-"

func (d dir) path(op, name string) (string, error) {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, temporary) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(string(d), name), nil
}

func (d dir) Create(name string) (File, error) {
	path, err := d.path("create", name)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(string(d), temporary+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &file{f, name}, nil
}

func (d dir) Open(name string) (File, error) {
	path, err := d.path("open", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &file{f, name}, nil
}

func (d dir) Rename(old, new string) error {
	from, err := d.path("rename", old)
	if err != nil {
		return err
	}
	to, err := d.path("rename", new)
	if err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d dir) Remove(name string) error {
	path, err := d.path("remove", name)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

func (d dir) Names() (names []string, err error) {
	entries, err := os.ReadDir(string(d)) // sorted by name
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), temporary) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d dir) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type file struct {
	*os.File
	name string
}

func (f *file) Name() string { return f.name }

func (f *file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
