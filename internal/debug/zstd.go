package debug

import (
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/softrnic/softrnic/internal/link/capture"
)

func init() {
	capture.NewZstd = func(w io.Writer) (io.WriteCloser, error) {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
}
