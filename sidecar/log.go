package sidecar

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"scopeward/sidecar/config"
)

// NewLogger writes to standard error: for eyes on a terminal, JSON anywhere
// else, unless the configuration says which. The level can be changed while it is
// in use.
func NewLogger(c config.Log) (*zap.Logger, zap.AtomicLevel) {
	level := zap.NewAtomicLevelAt(zapLevel(c.Level))
	var enc zapcore.Encoder
	if c.Format == config.FormatConsole || c.Format == config.FormatAuto && isTerminal(os.Stderr) {
		ec := zap.NewDevelopmentEncoderConfig()
		ec.EncodeLevel = zapcore.CapitalColorLevelEncoder
		ec.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		enc = zapcore.NewConsoleEncoder(ec)
	} else {
		ec := zap.NewProductionEncoderConfig()
		ec.TimeKey = "time"
		ec.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		enc = zapcore.NewJSONEncoder(ec)
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(os.Stderr), level)), level
}

// zapLevel is the configuration's level as zap counts.
func zapLevel(l config.Level) zapcore.Level {
	switch l {
	case config.LevelDebug:
		return zap.DebugLevel
	case config.LevelWarn:
		return zap.WarnLevel
	case config.LevelError:
		return zap.ErrorLevel
	}
	return zap.InfoLevel
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
