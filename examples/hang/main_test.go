package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHang(t *testing.T) {
	require.Equal(t, "hangs", native(50*time.Millisecond))
	require.Equal(t, "hello", braid(context.Background()))
}
