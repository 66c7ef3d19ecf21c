package nas

// Random is the state of NPB's random number generator, the linear
// congruential x' = a*x mod 2^46 with a = 5^13. It is a value, so that it can stay in
// a register:
//
//	x := nas.Random(seed)
//	x = x.Next()
//	u := x.Float64()
type Random uint64

const (
	multiplier = 1220703125 // 5^13
	modulus    = 1 << 46
)

// Next returns the state after one more number. The product modulo 2^64 is also correct modulo
// 2^46.
func (x Random) Next() Random { return x * multiplier % modulus }

// Float64 returns the current number, in (0, 1). Converting a signed integer is a single
// instruction on most processors.
func (x Random) Float64() float64 { return float64(int64(x)) * (1.0 / modulus) }

// Skip returns the state after n more numbers, in about 2 log n multiplications.
func (x Random) Skip(n uint64) Random {
	for a := Random(multiplier); n > 0; n >>= 1 {
		if n&1 != 0 {
			x = x * a % modulus
		}
		a = a * a % modulus
	}
	return x
}
