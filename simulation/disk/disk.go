// Package disk defines the file operations for a program whose data must survive crashes. The program runs on the operating system, and in
// simulation, where a test makes it crash:
//
//	func Open(d disk.FS) (*Store, error)
//
//	store, err := Open(must(disk.Dir("/var/lib/store"))) // in production
//	store, err := Open(node.FS())                        // in a test
//
// File.Sync makes a file's bytes durable, and FS.Sync makes names durable. A program that omits a Sync passes every test on a file system
// that never crashes. On a simulated node, such a program loses data in a crash, and its test fails.
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

// An FS is a set of named files, without directories.
type FS interface {
	Create(name string) (File, error) // creates an empty file, which replaces an older file of that name
	Open(name string) (File, error)   // opens an existing file for reading and writing
	Rename(old, new string) error     // renames a file, which replaces an older file of the new name
	Remove(name string) error         // removes the name; an open File remains usable
	Names() ([]string, error)         // returns the names of all files, sorted
	Sync() error                      // makes the effects of Create, Rename and Remove durable
}

// A File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string // returns the name that was passed to Create or Open
	Size() (int64, error)
	Truncate(size int64) error

	// Sync makes the bytes durable. If Sync fails, the bytes are not durable, and a later Sync does not make them durable: the program must
	// write them again.
	Sync() error
}

// Dir returns an FS for an existing directory of the operating system. The FS refuses names that contain a slash, and names that begin with
// ".new-". On Windows, where a directory cannot be synced, FS.Sync does nothing.
func Dir(path string) (FS, error) {
	d := dir(path)
	left, err := filepath.Glob(filepath.Join(path, temporary+"*"))
	if err != nil {
		return nil, err
	}
	for _, name := range left { // a crash during Create leaves such a file behind
		_ = os.Remove(name)
	}
	_, err = d.Names()
	return d, err
}

type dir string

// temporary is the prefix of a new file's name until Create renames the file. The rename preserves the older file until the next Sync;
// truncating the older file would destroy its bytes.
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
	entries, err := os.ReadDir(string(d)) // ReadDir sorts by name
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
