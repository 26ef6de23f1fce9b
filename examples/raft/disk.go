package raft

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
)

// A Disk stores the State of a node.
type Disk interface {
	Load() (State, error)

	// Save writes s. If sync is true, Save returns when s is durable.
	Save(s State, sync bool) error
}

// A File is one of the two files of a Slots. Both *os.File and a file of a simulated disk implement File.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// Slots is a Disk that writes its two files in turn, so that a crash damages only the newer file. Each file contains a sequence number, a
// checksum, and the state.
type Slots struct {
	Files   [2]File
	written int64 // the sequence number of the newest state
}

const header = 16

// Load implements Disk. It returns the newest state that is intact.
func (d *Slots) Load() (newest State, err error) {
	for _, f := range d.Files {
		var h [header]byte
		if _, err := f.ReadAt(h[:], 0); err != nil {
			continue // the file was never written
		}
		number, size, sum := int64(binary.BigEndian.Uint64(h[:])), binary.BigEndian.Uint32(h[8:]), binary.BigEndian.Uint32(h[12:])
		text := make([]byte, size)
		if n, _ := f.ReadAt(text, header); n < len(text) || crc32.ChecksumIEEE(text) != sum || number <= d.written {
			continue // the state is torn, or the other file is newer
		}
		var s State
		if err := json.Unmarshal(text, &s); err != nil {
			return State{}, err
		}
		newest, d.written = s, number
	}
	return newest, nil
}

// Save implements Disk.
func (d *Slots) Save(s State, sync bool) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	d.written++
	b := binary.BigEndian.AppendUint64(nil, uint64(d.written))
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(text))
	f := d.Files[d.written%2]
	if _, err := f.WriteAt(append(b, text...), 0); err != nil || !sync {
		return err
	}
	return f.Sync()
}
