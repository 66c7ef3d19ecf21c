package uverbs_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/softrnic/softrnic/verbs/uverbs"
)

func Example() {
	dev, err := uverbs.Open(uverbs.Options{Name: "no-such-device"})
	if err != nil {
		fmt.Println("device found:", !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported))
		return
	}
	defer dev.Close()
	// Output: device found: false
}
