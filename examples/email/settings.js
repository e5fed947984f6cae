// The settings of this service, from environment variables. README.md explains them.

/** @typedef {ReturnType<typeof readSettings>} Settings */

/** Reads all settings. Throws an error that lists every missing or invalid one. @param {NodeJS.ProcessEnv} environment */
export function readSettings(environment) {
  /** @type {string[]} */
  const problems = [];
  /** @param {string} name @param {string} [defaultValue] */
  const text = (name, defaultValue) => {
    const value = environment[name] || defaultValue;
    if (value === undefined) problems.push(`${name} is not set`);
    return value ?? '';
  };
  /** @param {string} name @param {number} defaultValue */
  const number = (name, defaultValue) => {
    const value = Number(environment[name] || defaultValue);
    if (!(value >= 0)) problems.push(`${name} must be a number`);
    return value;
  };
  const settings = {
    perennialUrl: text('PERENNIAL_URL'),
    perennialKey: text('PERENNIAL_KEY'),
    secrets: text('WEBHOOK_SECRETS').split(',').map((secret) => secret.trim()),
    smtpUrl: text('SMTP_URL'),
    from: text('MAIL_FROM'),
    appName: text('APP_NAME'),
    accountUrl: text('ACCOUNT_URL'),
    sentFile: text('SENT_FILE', 'sent.jsonl'),
    host: text('HOST', '127.0.0.1'),
    port: number('PORT', 3000),
    trialReminderDays: number('TRIAL_REMINDER_DAYS', 3),
    trialCheckSeconds: number('TRIAL_CHECK_SECONDS', 3600),
    maxEventAgeDays: number('MAX_EVENT_AGE_DAYS', 7),
    isSandbox: environment.SANDBOX_CLOCK === 'true',
  };
  if (problems.length > 0) throw new Error(`invalid settings: ${problems.join('; ')}`);
  return settings;
}
