package nildevice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// device is a device of pointer type.
type device struct{ verbs.Device }

func TestCheck(t *testing.T) {
	require.NoError(t, Check(&device{}))
	require.NoError(t, Check(device{}))
	require.ErrorIs(t, Check(nil), verbs.ErrInvalid)
	require.EqualError(t, Check((*device)(nil)), "nil device: verbs: invalid argument")
}
