package cmdline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// valueHints has the accepted values of a flag by its type (pflag.Value.Type), where the errors
// are those of packages strconv and time. Other values describe themselves in their errors.
var valueHints = map[string]string{
	"int": "a whole number", "int64": "a whole number", "intSlice": "whole numbers with commas between",
	"uint": "a whole number from 0", "uint8": "a whole number from 0 to 255", "uintSlice": "whole numbers from 0 with commas between",
	"float64": "a number", "bool": "true or false", "duration": "a time such as 10s or 1m30s",
}

// FlagError returns the error of a mistake in the flags of c: the flag, the refused value and the
// accepted values.
func FlagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
	}
	flag := invalid.GetFlag()
	name := "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	var number *strconv.NumError
	want, known := valueHints[flag.Value.Type()]
	if known && (errors.As(err, &number) || strings.HasPrefix(invalid.Unwrap().Error(), "time: ")) {
		return fmt.Errorf("%s: %q: want %s", name, invalid.GetValue(), want)
	}
	return fmt.Errorf("%s: %w", name, invalid.Unwrap())
}
