package storage

import "maps"

// A sparse holds the bytes of a file. Blocks that are missing have zeros, so a file that was made long before it is filled needs no memory.
type sparse struct {
	size   int64
	blocks map[int64]*[block]byte // a block that is in the map never changes, so clones share it
}

const block = 4096

// read copies the bytes at the offset off to p, and returns their number.
func (c *sparse) read(p []byte, off int64) int {
	p = p[:max(0, min(int64(len(p)), c.size-off))]
	for done := 0; done < len(p); {
		at := off + int64(done)
		part := p[done:min(len(p), done+int(block-at%block))]
		if b := c.blocks[at/block]; b != nil {
			copy(part, b[at%block:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return len(p)
}

// put writes p at the offset off.
func (c *sparse) put(p []byte, off int64) {
	c.size = max(c.size, off+int64(len(p)))
	if c.blocks == nil {
		c.blocks = map[int64]*[block]byte{}
	}
	for len(p) > 0 {
		b := new([block]byte)
		if old := c.blocks[off/block]; old != nil {
			*b = *old
		}
		n := copy(b[off%block:], p)
		c.blocks[off/block] = b
		p, off = p[n:], off+int64(n)
	}
}

// truncate changes the length. Bytes behind the end are zeros if the file grows again.
func (c *sparse) truncate(size int64) {
	if size < c.size {
		maps.DeleteFunc(c.blocks, func(i int64, _ *[block]byte) bool { return i*block >= size })
		if rest := size % block; c.blocks[size/block] != nil {
			c.put(make([]byte, block-rest), size)
		}
	}
	c.size = size
}

func (c *sparse) clone() sparse { return sparse{c.size, maps.Clone(c.blocks)} }
