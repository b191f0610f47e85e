package cuda

import "fmt"

// Code is a result of the driver, numbered as the driver numbers it. It is an
// error, so that errors.Is(err, cuda.CodeOutOfMemory) works on any error that
// wraps an [*Error].
type Code int32

// The codes that halox, or its user, can act on.
const (
	CodeSuccess            Code = 0
	CodeInvalidValue       Code = 1
	CodeOutOfMemory        Code = 2
	CodeNotInitialized     Code = 3
	CodeDeinitialized      Code = 4
	CodeStubLibrary        Code = 34
	CodeDeviceUnavailable  Code = 46
	CodeNoDevice           Code = 100
	CodeInvalidDevice      Code = 101
	CodeInvalidImage       Code = 200
	CodeInvalidContext     Code = 201
	CodeNoBinaryForGPU     Code = 209
	CodeECCUncorrectable   Code = 214
	CodePeerUnsupported    Code = 217
	CodeInvalidPTX         Code = 218
	CodeNVLinkError        Code = 220
	CodeUnsupportedPTX     Code = 222
	CodeInvalidHandle      Code = 400
	CodeIllegalState       Code = 401
	CodeNotFound           Code = 500
	CodeNotReady           Code = 600
	CodeIllegalAddress     Code = 700
	CodeOutOfResources     Code = 701
	CodeLaunchTimeout      Code = 702
	CodePeerAlreadyEnabled Code = 704
	CodePeerNotEnabled     Code = 705
	CodePrimaryActive      Code = 708
	CodeContextDestroyed   Code = 709
	CodeAssert             Code = 710
	CodeTooManyPeers       Code = 711
	CodeHardwareStack      Code = 714
	CodeIllegalInstruction Code = 715
	CodeMisalignedAddress  Code = 716
	CodeInvalidAddrSpace   Code = 717
	CodeInvalidPC          Code = 718
	CodeLaunchFailed       Code = 719
	CodeCooperativeTooBig  Code = 720
	CodeNotPermitted       Code = 800
	CodeNotSupported       Code = 801
	CodeSystemNotReady     Code = 802
	CodeDriverMismatch     Code = 803
	CodeMPSTerminated      Code = 807
	CodeCaptureUnsupported Code = 900
	CodeCaptureInvalidated Code = 901
	CodeCaptureMerge       Code = 902
	CodeCaptureUnmatched   Code = 903
	CodeCaptureUnjoined    Code = 904
	CodeCaptureIsolation   Code = 905
	CodeCapturedEvent      Code = 907
	CodeUnknown            Code = 999
)

// Error gives the number; the driver's words for it are in [Error].
func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int32(c)) }

// Sticky reports whether the code says that the context, and with it the
// device for the rest of the process, is lost: every later call would fail.
func (c Code) Sticky() bool {
	switch c {
	case CodeECCUncorrectable, CodeNVLinkError,
		CodeIllegalAddress, CodeLaunchTimeout, CodeContextDestroyed, CodeAssert,
		CodeHardwareStack, CodeIllegalInstruction, CodeMisalignedAddress,
		CodeInvalidAddrSpace, CodeInvalidPC, CodeLaunchFailed,
		CodeMPSTerminated, CodeUnknown:
		return true
	}
	return false
}
