// Lets a process that is stopped by a signal write its coverage.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit());
