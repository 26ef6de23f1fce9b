package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The excerpt of a long message has its beginning and its end, because an HTTP request has its body at the end.
func TestExcerpt(t *testing.T) {
	require.Equal(t, "short", excerpt([]byte("short"), 5))
	const post = "POST /charge HTTP/1.1\r\nHost: payments\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 24\r\n\r\n{\"id\":\"7\",\"amount\":10}"
	require.Equal(t, "POST /charge HTTP/1 ... ent-Length: 24\r\n\r\n{\"id\":\"7\",\"amount\":10}", excerpt([]byte(post), traced))
	for most := 10; most < len(post); most++ {
		require.Len(t, excerpt([]byte(post), most), most)
	}
}
