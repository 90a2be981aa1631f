"""The one settings file. Environment variables `SLOTSERVE_*`, `DATABASE_URL`, `REDIS_URL`.

docs/settings.md lists every one with its default; a test keeps that page complete.
"""

from pathlib import Path

from csp.constants import NONE, SELF
from django.core.management.utils import get_random_secret_key

from lanes.installation import settle
from slotserve.broker import celery_url, transport_options
from slotserve.database import own_database
from wire.addresses import read_database_url, read_redis_url, url_for_hosts
from wire.env import (
    SettingError,
    read_address,
    read_choice,
    read_flag,
    read_list,
    read_networks,
    read_number,
    read_path,
    read_secret,
    read_text,
    read_time_zone,
    read_whole,
)

BASE_DIR = Path(__file__).resolve().parent.parent
SLOTSERVE_DATA = read_path("SLOTSERVE_DATA", BASE_DIR / "var")
try:
    settle(SLOTSERVE_DATA)
except OSError as error:
    raise SettingError(f"SLOTSERVE_DATA: the folder cannot be used: {error}") from error


def _file_text(name: str, default: str) -> str:
    path = SLOTSERVE_DATA / name
    return path.read_text().strip() if path.is_file() else default


# --- Django ---------------------------------------------------------------------------------
DEBUG = read_flag("SLOTSERVE_DEBUG", default=False)
SECRET_KEY = read_secret("SLOTSERVE_SECRET_KEY") or _file_text(
    "secret-key", get_random_secret_key()
)
ALLOWED_HOSTS = list(read_list("SLOTSERVE_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]")))
CSRF_TRUSTED_ORIGINS = list(read_list("SLOTSERVE_TRUSTED_ORIGINS"))
SLOTSERVE_HTTPS = read_flag("SLOTSERVE_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SLOTSERVE_HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if SLOTSERVE_HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = ["^ready/$"]  # asked by balancers, and by containers of themselves
    SECURE_HSTS_SECONDS = read_whole("SLOTSERVE_HSTS_SECONDS", 31536000)
# Whether other names below ours have TLS is not ours to say, nor to tell browsers in advance.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20

INSTALLED_APPS = [
    "slotserve",  # before Django's: its changepassword takes the place of theirs
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "lanes",
    "bookings",
    "notices",
    "gateway",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "slotserve.static.StaticFiles",
    "slotserve.doors.Doors",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "slotserve.web.zones.ViewerZone",
    "slotserve.web.remembering.Remembering",
    "slotserve.web.second_factor.ForAdministrators",
]
ROOT_URLCONF = "slotserve.urls"
ASGI_APPLICATION = "slotserve.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "slotserve.web.notice_pages.unread",
                "slotserve.web.announcements.banner",
                "slotserve.web.navigation.frame",
            ]
        },
    }
]
_MEMORY = "django.core.cache.backends.locmem.LocMemCache"
CACHES = {
    "default": {"BACKEND": _MEMORY, "LOCATION": "default"},
    # Of the overview; apart, so that they never push counts of log-in attempts out.
    "cards": {"BACKEND": _MEMORY, "LOCATION": "cards", "OPTIONS": {"MAX_ENTRIES": 2000}},
    # Sums and pictures, which are large and soon out of date: few.
    "sums": {"BACKEND": _MEMORY, "LOCATION": "sums", "OPTIONS": {"MAX_ENTRIES": 60}},
}
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
INSTALLED_APPS.append("django.forms")
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_REDIRECT_URL = "/"
LOGIN_URL = "account_login"
ACCOUNT_ADAPTER = "slotserve.accounts.ClosedSignup"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[SlotServe] "
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_FORMS = {
    "login": "slotserve.web.account_forms.LoginForm",
    "reset_password": "slotserve.web.account_forms.ResetPasswordForm",
}
MFA_FORMS = {
    "add_webauthn": "slotserve.web.passkey_forms.AddWebAuthnForm",
    "authenticate_webauthn": "slotserve.web.passkey_forms.AuthenticateWebAuthnForm",
    "login_webauthn": "slotserve.web.passkey_forms.LoginWebAuthnForm",
    "reauthenticate_webauthn": "slotserve.web.passkey_forms.ReauthenticateWebAuthnForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "SlotServe"
MFA_TOTP_TOLERANCE = 1  # a code of the last half minute, or of a phone that is slow
MFA_ALLOW_UNVERIFIED_EMAIL = True  # nobody can sit on another's address: sign-up is closed
# Browsers offer passkeys on https and localhost alone; the latter is told apart by this only.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not SLOTSERVE_HTTPS
SLOTSERVE_MFA_FOR_ADMINISTRATORS = read_flag("SLOTSERVE_MFA_FOR_ADMINISTRATORS", default=False)
# --- OpenID Connect: who comes with a verified e-mail address is the member of that address -----
SLOTSERVE_OIDC_URL = read_address("SLOTSERVE_OIDC_URL")
SLOTSERVE_OIDC_NAME = read_text("SLOTSERVE_OIDC_NAME", "single sign-on")
SOCIALACCOUNT_ADAPTER = "slotserve.accounts.VerifiedPeople"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_EMAIL_REQUIRED = False
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, object]] = {}
if SLOTSERVE_OIDC_URL:
    _OIDC_APP = {
        "provider_id": "oidc",
        "name": SLOTSERVE_OIDC_NAME,
        "client_id": read_text("SLOTSERVE_OIDC_CLIENT_ID"),
        "secret": read_secret("SLOTSERVE_OIDC_CLIENT_SECRET"),
        "settings": {"server_url": SLOTSERVE_OIDC_URL, "oauth_pkce_enabled": True},
    }
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {"APPS": [_OIDC_APP]}
SLOTSERVE_OPEN_SIGNUP = read_flag("SLOTSERVE_OPEN_SIGNUP", default=False)
# --- Mail (notices, lost passwords): without a server it goes to the log ------------------------
EMAIL_HOST = read_text("SLOTSERVE_MAIL_HOST")
EMAIL_PORT = read_whole("SLOTSERVE_MAIL_PORT", 587, least=1)
EMAIL_HOST_USER = read_text("SLOTSERVE_MAIL_USER")
EMAIL_HOST_PASSWORD = read_secret("SLOTSERVE_MAIL_PASSWORD")
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = read_flag("SLOTSERVE_MAIL_STARTTLS", default=EMAIL_PORT == 587)
EMAIL_TIMEOUT = 10
EMAIL_BACKEND = (
    "lanes.smtp.EmailBackend" if EMAIL_HOST else "django.core.mail.backends.console.EmailBackend"
)
DEFAULT_FROM_EMAIL = read_text("SLOTSERVE_MAIL_FROM", "slotserve@localhost")
SLOTSERVE_WEB_URL = read_address("SLOTSERVE_WEB_URL")
SLOTSERVE_WEBHOOK_NETWORKS = read_networks("SLOTSERVE_WEBHOOK_NETWORKS")
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = SLOTSERVE_HTTPS
LOCALE_PATHS = [BASE_DIR / "locale", BASE_DIR / "locale" / "accounts"]
TIME_ZONE = read_time_zone("SLOTSERVE_TIME_ZONE", "UTC")
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = SLOTSERVE_DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "worker-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# --- Database -------------------------------------------------------------------------------
DATABASES = {"default": own_database(SLOTSERVE_DATA)}
SLOTSERVE_DATABASE_POOL = read_whole("SLOTSERVE_DATABASE_POOL", 20)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Valkey and Celery ----------------------------------------------------------------------
REDIS_URL = read_redis_url(_file_text("redis-url", ""))
CELERY_BROKER_URL = celery_url(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "plan"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# When the broker is lost: nothing of ours is acknowledged late, so that nothing is cancelled; but
# neither is there a warning of Celery's, nor a time in which fewer tasks are taken.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_ENABLE_PREFETCH_COUNT_REDUCTION = False
CELERY_TIMEZONE = "UTC"
SLOTSERVE_TICK_SECONDS = read_number("SLOTSERVE_TICK_SECONDS", 3.0, least=0.2)
NOTICES_SECONDS = max(10.0, SLOTSERVE_TICK_SECONDS)
USAGE_DAYS_SECONDS = 60.0
FORGET_SECONDS = 600.0
CELERY_BEAT_SCHEDULER = "slotserve.beat:SteadyScheduler"
CELERY_BEAT_SCHEDULE = {
    "plan": {
        "task": "slotserve.beat",
        "schedule": SLOTSERVE_TICK_SECONDS,
        "options": {"queue": "plan", "expires": SLOTSERVE_TICK_SECONDS},
    },
    "notices": {
        "task": "slotserve.notices",
        "schedule": NOTICES_SECONDS,
        "options": {"queue": "plan", "expires": NOTICES_SECONDS},
    },
    "usage-days": {
        "task": "slotserve.usage_days",
        "schedule": USAGE_DAYS_SECONDS,
        "options": {"queue": "plan", "expires": USAGE_DAYS_SECONDS},
    },
    "audit": {
        "task": "slotserve.audit",
        "schedule": FORGET_SECONDS,
        "options": {"queue": "plan", "expires": FORGET_SECONDS},
    },
    "forget": {
        "task": "slotserve.forget",
        "schedule": FORGET_SECONDS,
        "options": {"queue": "plan", "expires": FORGET_SECONDS},
    },
}

# As bookings.names knows them, which cannot be imported before the settings are read.
SLOTSERVE_NAMES = read_choice("SLOTSERVE_NAMES", ("members", "groups", "administrators"), "members")

# --- Scheduling (docs/scheduling.md) --------------------------------------------------------
SLOTSERVE_BUFFER_SECONDS = read_number("SLOTSERVE_BUFFER_SECONDS", 60.0)
SLOTSERVE_MIN_PRELOAD_SECONDS = read_number("SLOTSERVE_MIN_PRELOAD_SECONDS", 180.0)
SLOTSERVE_HOLD_MINUTES = read_number("SLOTSERVE_HOLD_MINUTES", 10.0, least=1.0)
SLOTSERVE_DRAIN_SECONDS = read_number("SLOTSERVE_DRAIN_SECONDS", 30.0)
SLOTSERVE_STOP_TIMEOUT_SECONDS = read_number("SLOTSERVE_STOP_TIMEOUT_SECONDS", 20.0, least=1.0)
SLOTSERVE_LOAD_TIMEOUT_SECONDS = read_number("SLOTSERVE_LOAD_TIMEOUT_SECONDS", 600.0, least=1.0)
SLOTSERVE_DISK_READ_MBPS = read_number("SLOTSERVE_DISK_READ_MBPS", 150.0, least=1.0)

# --- Hosts and model servers ----------------------------------------------------------------
SLOTSERVE_HOST_KEY = read_text("SLOTSERVE_HOST_KEY") or _file_text("host-key", "")
SLOTSERVE_HOST_SILENT_SECONDS = read_number("SLOTSERVE_HOST_SILENT_SECONDS", 20.0, least=1.0)
SLOTSERVE_LLAMA_SERVER = read_text("SLOTSERVE_LLAMA_SERVER")
SLOTSERVE_VLLM = read_text("SLOTSERVE_VLLM", "vllm serve")
SLOTSERVE_SGLANG = read_text("SLOTSERVE_SGLANG", "python3 -m sglang.launch_server")
SLOTSERVE_COMFYUI = read_text("SLOTSERVE_COMFYUI", "python3 /opt/ComfyUI/main.py")
SLOTSERVE_TRAINER = read_text("SLOTSERVE_TRAINER")
SLOTSERVE_COMMANDS = read_text("SLOTSERVE_COMMANDS")
SLOTSERVE_DOCKER_SOCKET = read_text("SLOTSERVE_DOCKER_SOCKET") or "/var/run/docker.sock"
SLOTSERVE_CONTAINER_SHM_MB = read_whole("SLOTSERVE_CONTAINER_SHM_MB", 8192, least=64)
SLOTSERVE_RUN_AS = read_text("SLOTSERVE_RUN_AS")
SLOTSERVE_PORT_FIRST = read_whole("SLOTSERVE_PORT_FIRST", 18100, least=1024)
SLOTSERVE_PORT_LAST = read_whole("SLOTSERVE_PORT_LAST", 18999, least=1024)
SLOTSERVE_HASH_MBPS = read_number("SLOTSERVE_HASH_MBPS", 100.0)
SLOTSERVE_LOG_BYTES = read_whole("SLOTSERVE_LOG_BYTES", 10 * 2**20, least=65536)
SLOTSERVE_LOG_RUNS = read_whole("SLOTSERVE_LOG_RUNS", 5, least=1)

# As machines that join as hosts reach them.
SLOTSERVE_HOSTS_DATABASE_URL = url_for_hosts(
    "SLOTSERVE_HOSTS_DATABASE_URL",
    read_secret("SLOTSERVE_HOSTS_DATABASE_URL"),
    read_database_url("sqlite://"),
)
SLOTSERVE_HOSTS_REDIS_URL = url_for_hosts(
    "SLOTSERVE_HOSTS_REDIS_URL", read_secret("SLOTSERVE_HOSTS_REDIS_URL"), REDIS_URL
)

# --- Gateway --------------------------------------------------------------------------------
SLOTSERVE_GATEWAY_URL = read_address("SLOTSERVE_GATEWAY_URL", "http://127.0.0.1:8001")
SLOTSERVE_AUDIT_DAYS = read_number("SLOTSERVE_AUDIT_DAYS", 730.0, least=1.0)
SLOTSERVE_EVENT_DAYS = read_number("SLOTSERVE_EVENT_DAYS", 400.0, least=1.0)
LEAST_USAGE_DAYS = 31.0
SLOTSERVE_USAGE_DAYS = read_number("SLOTSERVE_USAGE_DAYS", 400.0, least=LEAST_USAGE_DAYS)
SLOTSERVE_TABLE_DAYS = read_number("SLOTSERVE_TABLE_DAYS", 7.0, least=1.0)
SLOTSERVE_REQUESTS_PER_MINUTE = read_whole("SLOTSERVE_REQUESTS_PER_MINUTE", 0)
SLOTSERVE_TOKENS_PER_MINUTE = read_whole("SLOTSERVE_TOKENS_PER_MINUTE", 0)

# --- REST -----------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "slotserve.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["slotserve.api.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["slotserve.api.parsers.StorableJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "slotserve.api.pagination.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "slotserve.api.errors.answer_error",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "SlotServe",
    "DESCRIPTION": "Book time on shared GPUs and see what they run.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "AnnouncementLevel": "lanes.models.Level",
        "BookingKind": "bookings.models.Kind",
        "EndpointKind": "notices.models.EndpointKind",
        "FindingLevel": "slotserve.selfcheck.findings.Level",
        "InvitationState": "slotserve.models.InvitationState",
        "ModelKind": "lanes.models.ModelKind",
    },
}

# --- Logs -----------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {
        "short": {"()": "slotserve.logs.ShortRefusals"},
        "no_secrets": {"()": "slotserve.logs.NoSecrets"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "filters": ["short", "no_secrets"],
        }
    },
    "root": {"handlers": ["console"], "level": read_text("SLOTSERVE_LOG_LEVEL", "INFO")},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
