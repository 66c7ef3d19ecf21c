//go:build interop && linux

package interop

import (
	"testing"

	"github.com/softrnic/softrnic/interop/lab"
)

func TestMain(m *testing.M) { lab.Main(m.Run) }
