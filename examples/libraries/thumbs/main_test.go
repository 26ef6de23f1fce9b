package main

import (
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("THUMBS_REPLICA") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each picture gets its thumbnail, although a replica is killed.
func TestThumbs(t *testing.T) {
	dir := t.TempDir()
	const pictures = 150
	if _, err := run(dir, pictures, io.Discard); err != nil {
		t.Fatal(err)
	}
	made, _ := filepath.Glob(filepath.Join(dir, "thumbs", "*.png"))
	if len(made) != pictures {
		t.Errorf("%d thumbnails", len(made))
	}
	f, err := os.Open(made[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if c, err := png.DecodeConfig(f); err != nil || c.Width != 50 || c.Height != 37 {
		t.Error(c, err)
	}
}
