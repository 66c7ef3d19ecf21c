package rdm_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdm"
	"github.com/softrnic/softrnic/verbs"
)

// TestCloseTwice checks that every object is an io.Closer, and that a second Close returns nil.
func TestCloseTwice(t *testing.T) {
	a, b := endpoint(t, "", rdm.Options{}), endpoint(t, "", rdm.Options{})
	p := dial(t, a, b)
	r, err := a.Register(make([]byte, 64), verbs.AccessLocalWrite)
	require.NoError(t, err)
	for _, c := range []io.Closer{p, r, a} { // the endpoint last: it closes the others
		require.NoError(t, c.Close(), "%T", c)
		require.NoError(t, c.Close(), "%T", c)
	}
	<-p.Done()
}
