//go:build braid_gid_misread

package gid

import (
	"os"
	"strconv"
)

// This build misreads goroutine ids, as a build with a future version of Go may. On every goroutine, the function fast returns the
// number in BRAID_GID, or 0.
const misread = true

var wrong, _ = strconv.ParseInt(os.Getenv("BRAID_GID"), 10, 64)

func fast() int64 { return wrong }
