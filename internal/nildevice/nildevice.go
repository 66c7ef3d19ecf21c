// Package nildevice refuses a device that was not opened, where a call on it would crash later.
package nildevice

import (
	"fmt"
	"reflect"

	"github.com/softrnic/softrnic/verbs"
)

// Check returns verbs.ErrInvalid if dev is nil or a nil pointer, as after an ignored error of the
// call that opens it.
func Check(dev verbs.Device) error {
	if v := reflect.ValueOf(dev); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return nil
	}
	return fmt.Errorf("nil device: %w", verbs.ErrInvalid)
}
