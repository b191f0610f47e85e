package configs

// IsReserved is for tests.
var IsReserved = isReserved
