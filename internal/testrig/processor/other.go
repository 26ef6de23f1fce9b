//go:build !unix

package processor

import "time"

func Used() time.Duration { return 0 }

func UsedWithChildren() time.Duration { return 0 }
