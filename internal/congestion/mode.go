package congestion

import (
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/internal/spelling"
)

// A Mode selects the rules of a Controller.
type Mode uint8

// Modes.
const (
	Off   Mode = iota // no Controller: the window of package reliability alone
	Auto              // DCQCN and Delay
	DCQCN             // only DCQCN
	Delay             // only the delay-based rule
)

var modeNames = []string{"off", "auto", "dcqcn", "delay"}

// String returns the name of the mode, as ParseMode takes it.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// ParseMode returns the mode with a name: off, auto, dcqcn or delay.
func ParseMode(name string) (Mode, error) {
	if i := slices.Index(modeNames, name); i >= 0 {
		return Mode(i), nil
	}
	return Off, fmt.Errorf("congestion control %.40q is unknown%s; want off, auto, dcqcn or delay", name, spelling.Hint(name, modeNames...))
}
