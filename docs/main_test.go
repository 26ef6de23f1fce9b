package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPictures(t *testing.T) {
	for name, draw := range pictures {
		var b bytes.Buffer
		require.NoError(t, draw(&b))
		old, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(old), b.String(), "run: go run ./docs")
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
		}
	}
}
