package apptest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata anew")

// EncodePNG returns picture as a PNG. The bytes may change with the version of Go.
func EncodePNG(t testing.TB, picture image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, picture))
	return b.Bytes()
}

// Checksum returns a checksum of the pixels: the first 8 bytes of SHA-256, in hex.
func Checksum(picture *image.NRGBA) string {
	sum := sha256.Sum256(picture.Pix)
	return hex.EncodeToString(sum[:8])
}

// CompareGolden fails the test if picture differs from the PNG in file. With -update it writes
// the file.
func CompareGolden(t testing.TB, file string, picture *image.NRGBA) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, EncodePNG(t, picture), 0o644))
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	golden, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	pix := image.NewNRGBA(golden.Bounds())
	draw.Draw(pix, pix.Rect, golden, image.Point{}, draw.Src)
	require.Equal(t, pix, picture)
}
