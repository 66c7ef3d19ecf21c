package closing_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cmd/internal/closing"
)

func TestAll(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, closing.All[io.Closer](nil, w, nil))
	require.ErrorIs(t, closing.All[io.Closer](w, r), os.ErrClosed)
	require.ErrorIs(t, r.Close(), os.ErrClosed, "closed behind the one that failed")
}
